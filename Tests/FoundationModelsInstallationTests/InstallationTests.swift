import FoundationModelsInstallation
import InstalledModels
import Testing

@Suite struct InstallationTests {
    @Test func `the default installation is the folder that the system model uses`() {
        #expect(ModelInstallation.default.directory == ModelStore.directory)
    }
}
